import { accessSync, constants } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
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

export function isThere(program: string): boolean {
  try {
    accessSync(program, constants.X_OK)
    return true
  } catch {
    return false
  }
}
