/**
 * Runs the test files that it is given, one after the other, as uvu's own command line does. Ends at the first file that fails or
 * that leaves `process.env` changed.
 */
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { cpuMs } from './report-cpu.ts'
import { endOfFile } from './uvu-output.ts'

/** uvu's queue of suites: the first element of a group is its name. */
const shared = globalThis as typeof globalThis & { UVU_DEFER?: 1; UVU_QUEUE: unknown[][] }
shared.UVU_DEFER = 1
const { exec } = await import('uvu')

/** Passwords take a twentieth of a second each, on purpose. Their own test has a process of its own and hashes as the service does. */
const argon2 = createRequire(import.meta.url)('@node-rs/argon2')
const { hash } = argon2
argon2.hash = (password: Buffer, options: object) =>
  hash(password, { ...options, memoryCost: 8, timeCost: 1 })

const environment = { ...process.env }
/** MikroORM's migrator sets it. */
const BY_LIBRARIES = ['MIKRO_ORM_COLORS']
const changed = () =>
  [...new Set([...Object.keys(environment), ...Object.keys(process.env)])].filter(
    (name) => environment[name] !== process.env[name] && !BY_LIBRARIES.includes(name),
  )
for (const path of process.argv.slice(2)) {
  const started = performance.now()
  const before = cpuMs()
  shared.UVU_QUEUE.splice(0, Infinity, [null])
  await import(pathToFileURL(path).href)
  await exec()
  if (process.exitCode) break
  if (changed().length > 0)
    throw new Error(`${path} leaves these environment variables changed: ${changed()}`)
  process.stdout.write(endOfFile(performance.now() - started, cpuMs() - before))
}
