#!/usr/bin/env node
// Plain JavaScript without imports: an old Node cannot even read a .ts file, and must still print what is missing.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `affiliate: this is Node.js ${process.versions.node}; 22.19 or later is needed. On Linux, npm ci brings one, which ./cli/affiliate uses; elsewhere install one.`,
  )
  process.exit(1)
}

const { enableCompileCache } = await import('node:module')
// Stripping types is most of a short command's time, so it is done once. Beside the code, not in the shared temporary
// folder, where other users could replace it.
if (!process.env.NODE_V8_COVERAGE) {
  const { fileURLToPath } = await import('node:url')
  enableCompileCache(
    process.env.NODE_COMPILE_CACHE ||
      fileURLToPath(new URL('../node_modules/.cache/affiliate', import.meta.url)),
  )
}
// Node strips no types below node_modules, so the published package holds JavaScript only.
const { existsSync } = await import('node:fs')
const isSource = existsSync(new URL('./main.ts', import.meta.url))
await import(isSource ? './main.ts' : '../dist/cli/main.js')
