"""`mneme chat`, `mneme remember` and `mneme memories`."""
