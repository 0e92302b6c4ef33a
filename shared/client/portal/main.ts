// A page from before a deployment may name scripts that are gone: it is loaded again, as after a lost connection.
import('./shell.tsx').catch(() => setTimeout(() => location.reload(), 5000))
