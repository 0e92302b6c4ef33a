import { OPERATOR } from '../../../server/flags/audit.service.ts'
import { Refusal } from '../../../server/platform/api/refusal.ts'
import type { Platform } from '../../../server/platform/platform.ts'
import { confirmTotp, startTotp } from '../../../server/users/second-factor.service.ts'
import type { UserRecord } from '../../../server/users/users.service.ts'
import { Failure, Interrupted } from '../../failures.ts'
import { printLines } from '../../terminal/printable-text.ts'
import { Terminal } from '../../terminal/prompts.ts'

const MOST_TRIES = 3

/** Sets up a second factor: shows the secret on stderr, reads a code from stdin, and returns the recovery codes. */
export async function enroll(platform: Platform, user: UserRecord): Promise<string[]> {
  const { secret, otpauthUrl } = await startTotp(platform, user)
  const lines = ['Add this account to an authenticator app, by the secret or as a QR code:', '']
  printLines(
    [...lines, `  ${secret.replace(/.{4}(?=.)/g, '$& ')}`, '', `  ${otpauthUrl}`, ''],
    process.stderr,
  )
  const terminal = new Terminal()
  try {
    return await confirmed(platform, user, terminal)
  } finally {
    terminal.close()
  }
}

async function confirmed(platform: Platform, user: UserRecord, terminal: Terminal): Promise<string[]> {
  for (let left = MOST_TRIES - 1; ; left -= 1) {
    const code = await terminal.ask('Code that the app shows: ')
    if (terminal.interrupted) throw new Interrupted()
    if (code === null) throw new Failure('No code was given; the second factor is off. Run this again.')
    try {
      return await confirmTotp(platform, user.id, code, OPERATOR)
    } catch (error) {
      if (left === 0 || !(error instanceof Refusal && error.code === 'invalid_credentials')) throw error
      printLines(
        ['That is not the current code. Check the clocks of the phone and of this machine.'],
        process.stderr,
      )
    }
  }
}
