"""What other programs' agents get of the operations: LangChain tools and middleware, and an MCP server."""
