import type { Command } from 'commander'
import {
  readNotifications,
  updateNotifications,
} from '../../server/notifications/channels/mail/notifications.service.ts'
import {
  listMails,
  type MailRow,
  retryMail,
  showMail,
} from '../../server/notifications/channels/mail/operator-mails.service.ts'
import { findUser } from '../../server/users/users.service.ts'
import type { PageOptions } from '../command.ts'
import { READS, reads, withApp, writes } from '../context.ts'
import { userIdOf } from '../lists.ts'
import { wireTime } from '../terminal/output.ts'

type ListOptions = PageOptions & { state?: MailRow['state']; user?: string }

export const list = reads(async ({ platform, out }, { user, ...options }: ListOptions) => {
  const userId = (await userIdOf(platform, user)) ?? undefined
  out.showPage(await listMails(platform, { ...options, userId }), {
    columns: [
      { title: 'Id', cell: (mail) => mail.id },
      { title: 'State', cell: (mail) => mail.state },
      { title: 'To', flexible: true, cell: (mail) => mail.address },
      { title: 'Kind', cell: (mail) => mail.kind },
      { title: 'Error', flexible: true, cell: (mail) => mail.last_error },
      out.moment('Written', (mail) => mail.created_at),
      { title: 'Tries', right: true, cell: (mail) => mail.attempts },
    ],
    wire: wireMail,
    none: 'No mails.',
  })
})

export const show = reads(async ({ platform, out }, id: string) => {
  const { row, subject, text } = await showMail(platform, id)
  const next = `Next attempt: ${out.shortTime(row.next_try_at)}, after ${row.attempts} without success`
  out.show({ ...wireMail(row), subject, text }, () => [
    `Mail ${row.id}: ${row.kind}, ${row.state}`,
    `To: ${row.address}`,
    `Written: ${out.shortTime(row.created_at)}`,
    ...(row.state === 'queued' && row.attempts > 0 ? [next] : []),
    ...(row.last_error === null ? [] : [`Error: ${row.last_error}`]),
    `Subject: ${subject}`,
    '',
    ...text.split('\n'),
  ])
})

export const retry = writes(async ({ platform, out }, id: string) => {
  const mail = await retryMail(platform, id)
  out.show(wireMail(mail), () => [`The mail to ${mail.address} is queued; the worker sends it.`])
})

export function preferences(
  user: string,
  { off, on }: { off?: string; on?: string },
  command: Command,
): Promise<void> {
  const change = { ...(off !== undefined && { [off]: false }), ...(on !== undefined && { [on]: true }) }
  const isChange = Object.keys(change).length > 0
  return withApp(
    command,
    async ({ platform, out }) => {
      const { id: userId, role, email: address } = await findUser(platform, user)
      const owner = { userId, role }
      const { email } = isChange
        ? await updateNotifications(platform, owner, { email: change }, { operator: true })
        : await readNotifications(platform, owner)
      out.show({ user_id: userId, address, email }, () =>
        out.table(Object.entries(email), [
          { title: 'Event', cell: ([event]) => event },
          { title: 'E-mail', cell: ([, wanted]) => (wanted ? 'on' : 'off') },
        ]),
      )
    },
    isChange ? {} : READS,
  )
}

export function wireMail(mail: MailRow) {
  return {
    id: mail.id,
    user_id: mail.user_id,
    address: mail.address,
    kind: mail.kind,
    state: mail.state,
    attempts: mail.attempts,
    next_attempt_at: mail.state === 'queued' ? wireTime(mail.next_try_at) : null,
    error: mail.last_error,
    created_at: wireTime(mail.created_at),
    finished_at: wireTime(mail.finished_at),
  }
}
