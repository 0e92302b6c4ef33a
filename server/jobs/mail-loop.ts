import {
  deliverMails,
  nextMailDueAt,
  removeOldMails,
} from '../notifications/channels/mail/deliver-mails.service.ts'
import { type MailTransport, openMailTransport } from '../notifications/channels/mail/mail-transport.ts'
import { mailMode } from '../platform/config.ts'
import type { Platform } from '../platform/platform.ts'
import { Loop } from './loop.ts'

const CLEANUP_EVERY_MS = 3_600_000

/**
 * Starts sending mail and removing old mails. `stop()` does not wait for a slow mail server: mails under way are left for the next worker.
 */
export function startMailLoops(platform: Platform): { stop(): Promise<void> } {
  if (mailMode(platform.config) === 'off') return { stop: async () => {} }
  const stopping = new AbortController()
  let transport: MailTransport | undefined
  const delivery = new Loop(platform, {
    name: 'mails',
    signals: ['mails'],
    async run() {
      // The mail library is loaded for the first mail.
      if (!transport) {
        const due = await nextMailDueAt(platform)
        if (due === null || due > platform.clock.now()) return 0
      }
      transport ??= await openMailTransport(platform.config, platform.log)
      return deliverMails(platform, transport, stopping.signal)
    },
    nextDueAt: () => nextMailDueAt(platform),
  })
  const cleanup = new Loop(platform, {
    name: 'old mails',
    run: () => removeOldMails(platform).then(() => 0),
    longestSleepMs: CLEANUP_EVERY_MS,
  })
  return {
    async stop() {
      stopping.abort()
      await Promise.all([delivery.stop(), cleanup.stop()])
      transport?.close()
    },
  }
}
