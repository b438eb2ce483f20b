// Unpack the bulk data of a message: each column is a buffer and becomes a typed array.
const TYPES = { f4: Float32Array, f8: Float64Array, i4: Int32Array };

// The message with its columns as fields beside its other fields.
export function unpack(content, buffers) {
  const message = { ...content };
  (content.columns || []).forEach(([name, type, length], k) => {
    message[name] = typed(TYPES[type], buffers[k], length);
  });
  delete message.columns;
  return message;
}

// A copy, because a received buffer may have any offset, and typed arrays must be aligned.
function typed(Type, data, length) {
  if (!length) return new Type(0);
  const bytes = data.buffer ? data : new Uint8Array(data);
  const start = bytes.byteOffset;
  return new Type(bytes.buffer.slice(start, start + length * Type.BYTES_PER_ELEMENT));
}
