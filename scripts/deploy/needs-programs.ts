import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { suite } from 'uvu'

/** Adds a test that needs programs, or skips it where one is missing. */
export function needsPrograms(
  it: ReturnType<typeof suite>,
  programs: string[],
  name: string,
  test: () => Promise<void>,
): void {
  const missing = programs.filter((program) => !isInstalled(program))
  if (missing.length === 0) it(name, test)
  else it.skip(`${name}: ${missing.join(', ')} is not installed`, () => {})
}

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
