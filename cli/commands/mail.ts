import type { Command } from 'commander'
import type { MailRow } from '../../server/mail/mail-desk.service.ts'
import { MAIL_EVENT_NAMES } from '../../shared/mail-events.ts'
import { addGroup, exampleText, oneOf } from '../command.ts'
import { READS, withApp } from '../context.ts'
import { addPageOptions, type PageOptions } from '../pages.ts'
import { type Output, wireTime } from '../terminal/output.ts'

interface PreferenceOptions {
  off?: string
  on?: string
}

interface ListOptions extends PageOptions {
  state?: MailRow['state']
}

export function addMailCommands(program: Command): void {
  const group = addGroup(program, 'mail', 'e-mails to users: look at them, send failed ones again')
  addPageOptions(
    group
      .command('list')
      .description('the newest mails, and why one was not sent')
      .option('--state <state>', 'queued, sent or failed', oneOf(['queued', 'sent', 'failed'])),
  )
    .addHelpText('after', exampleText('mail list --state failed'))
    .action((options: ListOptions, command: Command) => list(options, command))
  group
    .command('show')
    .description(
      'a mail with its text; the token of its link is hidden once it is sent, and always with SMTP_URL',
    )
    .argument('<mail>', 'id')
    .addHelpText('after', exampleText('mail show 019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'))
    .action((id: string, _options: object, command: Command) => show(id, command))
  group
    .command('retry')
    .description('send a mail that failed or waits now')
    .argument('<mail>', 'id')
    .addHelpText('after', exampleText('mail retry 019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'))
    .action((id: string, _options: object, command: Command) => retry(id, command))
  group
    .command('preferences')
    .description('which events a user is notified of by e-mail; turn one off for a user who asks')
    .argument('<user>', 'id or e-mail')
    .option('--off <event>', 'send no more mails about this event', oneOf(MAIL_EVENT_NAMES))
    .option('--on <event>', 'send mails about this event again', oneOf(MAIL_EVENT_NAMES))
    .addHelpText(
      'after',
      exampleText(
        'mail preferences creator@example.com',
        'mail preferences creator@example.com --off payout.paid',
      ),
    )
    .action((user: string, options: PreferenceOptions, command: Command) =>
      preferences(user, options, command),
    )
}

function list({ state, ...page }: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listMails } = await import('../../server/mail/mail-desk.service.ts')
      const { items, next_cursor } = await listMails(app.platform, { state, ...page })
      out.showPage({ items: items.map(wireMail), next_cursor }, () =>
        out.table(
          [
            { title: 'To', flexible: true },
            { title: 'Kind' },
            { title: 'State' },
            { title: 'Tries', right: true },
            { title: 'Written' },
            { title: 'Error', flexible: true },
            { title: 'Id' },
          ],
          items.map((mail) => [
            mail.address,
            mail.kind,
            mail.state,
            String(mail.attempts),
            out.shortTime(mail.created_at),
            mail.last_error ?? '–',
            mail.id,
          ]),
        ),
      )
    },
    READS,
  )
}

function show(text: string, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { readId } = await import('../arguments.ts')
      const { showMail } = await import('../../server/mail/mail-desk.service.ts')
      const mail = await showMail(app.platform, readId('mail', text))
      const document = { ...wireMail(mail.row), subject: mail.subject, text: mail.text }
      out.show(document, () => [
        ...headLines(out, mail.row),
        `Subject: ${mail.subject}`,
        '',
        ...mail.text.split('\n'),
      ])
    },
    READS,
  )
}

function headLines(out: Output, mail: MailRow): string[] {
  return [
    `Mail ${mail.id}: ${mail.kind}, ${mail.state}`,
    `To: ${mail.address}`,
    `Written: ${out.shortTime(mail.created_at)}`,
    ...(mail.state === 'queued' && mail.attempts > 0
      ? [`Next attempt: ${out.shortTime(mail.next_try_at)}, after ${mail.attempts} without success`]
      : []),
    ...(mail.last_error === null ? [] : [`Error: ${mail.last_error}`]),
  ]
}

function retry(text: string, command: Command): Promise<void> {
  return withApp(command, async ({ app, out }) => {
    const { readId } = await import('../arguments.ts')
    const { retryMail } = await import('../../server/mail/mail-desk.service.ts')
    const mail = await retryMail(app.platform, readId('mail', text))
    out.show(wireMail(mail), () => [`The mail to ${mail.address} is queued; the worker sends it.`])
  })
}

function preferences(text: string, { off, on }: PreferenceOptions, command: Command): Promise<void> {
  const isChange = off !== undefined || on !== undefined
  return withApp(
    command,
    async ({ app, out }) => {
      const { findUser } = await import('../../server/users/users.service.ts')
      const service = await import('../../server/mail/notifications.service.ts')
      const { id: userId, role, email: address } = await findUser(app.platform, text)
      const change = { ...(off !== undefined && { [off]: false }), ...(on !== undefined && { [on]: true }) }
      const { email } = isChange
        ? await service.updateNotifications(
            app.platform,
            { userId, role },
            { email: change },
            { operator: true },
          )
        : await service.readNotifications(app.platform, { userId, role })
      out.show({ user_id: userId, address, email }, () =>
        out.table(
          [{ title: 'Event' }, { title: 'E-mail' }],
          Object.entries(email).map(([event, wanted]) => [event, wanted ? 'on' : 'off']),
        ),
      )
    },
    isChange ? {} : READS,
  )
}

function wireMail(mail: MailRow) {
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
