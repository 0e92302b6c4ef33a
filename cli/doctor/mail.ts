import { type Config, mailMode } from '../../server/platform/config.ts'
import { countOf } from '../../server/platform/database/bulk-values.ts'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import type { MailServer } from '../../server/platform/setting-kinds.ts'
import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import { about, type Finding } from './finding.ts'

const mail = about('mail')

/** Whether mail is sent, and whether it arrives at the mail server. Sends nothing. */
export async function examineMail(config: Config, database: OpenDatabase | null): Promise<Finding> {
  switch (mailMode(config)) {
    case 'off':
      return config.NODE_ENV === 'production' && config.SMTP_URL === undefined
        ? mail.warn(
            'no mail is sent: users cannot reset a password, and learn of nothing',
            'Set SMTP_URL and MAIL_FROM, or SMTP_URL=off if that is intended.',
          )
        : mail.info('no mail is sent (SMTP_URL=off)')
    case 'file':
      return mail.info('mails are kept as files in DATA_DIR/mail; set SMTP_URL to send them')
    case 'smtp': {
      const { host, port } = config.SMTP_URL as MailServer
      return database ? examineDelivery(database, `${host}:${port}`) : mail.info(`goes to ${host}:${port}`)
    }
  }
}

async function examineDelivery({ reader }: OpenDatabase, server: string): Promise<Finding> {
  const now = Date.now()
  const failed = await countOf(
    reader
      .selectFrom('mails')
      .where('state', '=', 'failed')
      .where('finished_at', '>', now - DAY_MS),
  )
  const late = await countOf(
    reader
      .selectFrom('mails')
      .where('state', '=', 'queued')
      .where('created_at', '<', now - HOUR_MS),
  )
  if (late + failed === 0) return mail.ok(`goes to ${server}`)
  const what = late ? 'a mail has waited for more than an hour' : `mails failed within 24 hours: ${failed}`
  return mail.warn(
    `${what}, by ${server}`,
    'See "affiliate mail list" for the reasons; fix SMTP_URL, then "affiliate mail retry MAIL".',
  )
}
