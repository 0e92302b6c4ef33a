import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Runs `tsc` on a project file of the repository and writes to `folder`. Throws if the project does not compile. */
export function compile(project: string, folder: string, ...options: string[]): void {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  // Parallel checkers would infer most types twice.
  const args = [tsc, '--singleThreaded', ...options, '--project', join(ROOT, project), '--outDir', folder]
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`${project} does not compile`)
}
