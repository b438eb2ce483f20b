"""Files of searches with other contents, and a checksum that fits them."""

import hashlib
import json


def write(path, body):
    body.pop("checksum", None)
    checksum = hashlib.sha256(json.dumps(body, separators=(",", ":"), sort_keys=True).encode()).hexdigest()[:32]
    path.write_text(json.dumps({"checksum": checksum, **body}))
