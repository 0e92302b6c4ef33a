// The process entry of containers: `node server/main.ts` is `affiliate serve`, with its output and its way to end. A Node
// that is too old to read TypeScript refuses this file before its first line; `./cli/affiliate serve` says what it needs.
process.argv.splice(2, 0, 'serve')
await import(new URL('../cli/affiliate.mjs', import.meta.url).href)
