"""What the panels draw with: messages from Python to the page, the script that draws, and the widgets that hold it."""
