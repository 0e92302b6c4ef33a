import { accessSync, constants } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { suite, type Test } from 'uvu'
import { GIVE_UP_MS } from './eventually.ts'

const PROGRAM = '/usr/bin/chromium'
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export const hasChromium = isThere(PROGRAM)

/** A browser with nothing remembered. */
export function launchChromium(...flags: string[]): Promise<Browser> {
  return chromium.launch({ executablePath: PROGRAM, args: [...FLAGS, ...flags], timeout: GIVE_UP_MS })
}

/** A suite that needs Chromium; where there is none, one skipped test that says so. */
export function onChromium<Context>(it: Test<Context>): Test<Context> {
  if (hasChromium) return it
  const without = suite<Context>('without Chromium')
  without.skip(`there is no Chromium at ${PROGRAM}`, () => {})
  return without
}

export function isThere(program: string): boolean {
  try {
    accessSync(program, constants.X_OK)
    return true
  } catch {
    return false
  }
}
