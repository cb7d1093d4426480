import react from "@vitejs/plugin-react";
import license from "rollup-plugin-license";
import { defineConfig } from "vite";

// The result is in the Python package, so that nobody who installs it needs Node.
export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../../mneme/server/console",
    emptyOutDir: true,
    target: "es2023",
    chunkSizeWarningLimit: 700,
    modulePreload: { polyfill: false },
    assetsDir: "",
    rollupOptions: {
      output: { entryFileNames: "[name].js", chunkFileNames: "[name].js", assetFileNames: "[name][extname]" },
      plugins: [license({ thirdParty: { output: "../../mneme/server/console/LICENSES.txt" } })],
    },
  },
});
