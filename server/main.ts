// The process entry of containers: `node server/main.ts` is `affiliate serve`, with its Node version check, its output
// and its way to end.
process.argv.splice(2, 0, 'serve')
await import(new URL('../cli/affiliate.mjs', import.meta.url).href)
