import { type Config, mailMode } from '../../server/platform/config.ts'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import type { MailServer } from '../../server/platform/setting-kinds.ts'
import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import { type Finding, info, ok, warn } from './finding.ts'

const LATE_MS = HOUR_MS

/** Whether mail is sent, and whether it arrives at the mail server. Sends nothing. */
export async function examineMail(config: Config, database: OpenDatabase | null): Promise<Finding> {
  switch (mailMode(config)) {
    case 'off':
      return config.NODE_ENV === 'production' && config.SMTP_URL === undefined
        ? warn(
            'mail',
            'no mail is sent: users cannot reset a password, and learn of nothing',
            'Set SMTP_URL and MAIL_FROM, or SMTP_URL=off if that is intended.',
          )
        : info('mail', 'no mail is sent (SMTP_URL=off)')
    case 'file':
      return info('mail', 'mails are kept as files in DATA_DIR/mail; set SMTP_URL to send them')
    case 'smtp': {
      const { host, port } = config.SMTP_URL as MailServer
      return database ? examineDelivery(database, `${host}:${port}`) : info('mail', `goes to ${host}:${port}`)
    }
  }
}

async function examineDelivery({ reader }: OpenDatabase, server: string): Promise<Finding> {
  const now = Date.now()
  const { failed } = await reader
    .selectFrom('mails')
    .select((eb) => eb.fn.countAll<number>().as('failed'))
    .where('state', '=', 'failed')
    .where('finished_at', '>', now - DAY_MS)
    .executeTakeFirstOrThrow()
  const late = await reader
    .selectFrom('mails')
    .select('last_error')
    .where('state', '=', 'queued')
    .where('created_at', '<', now - LATE_MS)
    .limit(1)
    .executeTakeFirst()
  if (!late && Number(failed) === 0) return ok('mail', `goes to ${server}`)
  const what = late ? 'a mail has waited for more than an hour' : `mails failed within 24 hours: ${failed}`
  return warn(
    'mail',
    `${what}, by ${server}`,
    'See "affiliate mail list" for the reasons; fix SMTP_URL, then "affiliate mail retry MAIL".',
  )
}
