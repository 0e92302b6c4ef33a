import type { Command } from 'commander'
import { MAIL_EVENT_NAMES } from '../../shared/events.ts'
import { addGroup, addPageOptions, EXAMPLE_ID, exampleText, idOf, lazy, oneOf } from '../command.ts'

const actions = lazy(() => import('./mail.actions.ts'))

export function addMailCommands(program: Command): void {
  const group = addGroup(program, 'mail', 'e-mails to users: look at them, send failed ones again')
  addPageOptions(
    group
      .command('list')
      .description('the newest mails, and why one was not sent')
      .option('--state <state>', 'queued, sent or failed', oneOf(['queued', 'sent', 'failed'])),
  )
    .addHelpText('after', exampleText('mail list --state failed'))
    .action(actions.list)
  group
    .command('show')
    .description(
      'a mail with its text; the token of its link is hidden once it is sent, and always with SMTP_URL',
    )
    .argument('<mail>', 'id', idOf('mail'))
    .addHelpText('after', exampleText(`mail show ${EXAMPLE_ID}`))
    .action(actions.show)
  group
    .command('retry')
    .description('send a mail that failed or waits now')
    .argument('<mail>', 'id', idOf('mail'))
    .addHelpText('after', exampleText(`mail retry ${EXAMPLE_ID}`))
    .action(actions.retry)
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
    .action(actions.preferences)
}
