import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export const run = promisify(execFile)

/** Whether `npm install` can add packages here. */
export function registryAnswers(): Promise<boolean> {
  return run('npm', ['view', 'vite', 'name', '--fetch-retries=0']).then(
    () => true,
    () => false,
  )
}

export async function npmInstall(project: string, ...packages: string[]): Promise<void> {
  const options = ['--prefer-offline', '--no-audit', '--no-fund']
  await run('npm', ['install', ...options, ...packages], { cwd: project })
}

/** What a compiler says of a project; empty if it compiles. */
export async function compile(project: string, tsc: string): Promise<string> {
  return run(process.execPath, [tsc, '--project', project]).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  )
}
