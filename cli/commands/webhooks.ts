import { type CliCommand, EXAMPLE_ID, lazy, oneOf, wholeNumber } from '../command.ts'

const actions = lazy(() => import('./webhooks.actions.ts'))

/** More is a load test, for which there are other tools. */
const MOST_TIMES = 1000

export function addWebhookCommands(program: CliCommand): void {
  const group = program.subcommand('webhooks', 'signed events: what came in, and fixtures to send')
  group
    .subcommand('fixtures', 'the events that can be sent, and what each must lead to')
    .examples('webhooks fixtures')
    .action(actions.fixtures)
  group
    .subcommand(
      'replay',
      'sign fixtures, a recorded event or a file with the stored secret, send them to the running service, and compare what they lead to with what is expected; refused in production',
    )
    .argument(
      '[fixtures...]',
      'names from "webhooks fixtures", all (every order), or the id of a recorded event',
    )
    .option('--all', 'every order and every processor event, each with what it needs')
    .option('--same', "the fixture's own order id and name, so that the order repeats; new ones unless given")
    .option('--body <file>', 'send this file instead (- is stdin)')
    .option('--as <source>', 'who sends the file: store or processor', oneOf(['store', 'processor']), 'store')
    .option('--url <url>', 'the service, on this machine; the address of HOST and PORT unless given')
    .option('--allow-remote', 'let --url name another machine; recorded events are never sent there')
    .option(
      '--link <slug>',
      'follow this affiliate link first: its click, creator and product fill the order; the newest active one unless given',
    )
    .option(
      '--store <store>',
      "the store that sends, by host name or id; the link's merchant's newest one unless given",
    )
    .option('--event-id <id>', 'the delivery id; a new one unless given (the same again is a redelivery)')
    .option(
      '--cycle <cycle>',
      'the billing cycle that a processor event is about; one that fits, or is made in the sandbox, unless given',
    )
    .option(
      '--payout <payout>',
      'the payout that a processor event is about; one that fits, or is made in the sandbox, unless given',
    )
    .option('--times <n>', 'deliver each so often, as senders do', wholeNumber(1, MOST_TIMES), 1)
    .option('--shuffle', 'deliver in a random order')
    .option(
      '--corrupt <part>',
      'break the signature, body or timestamp: the service must refuse it',
      oneOf(['signature', 'body', 'timestamp']),
    )
    .remarks(`The service must run: start it with "npm start". A ✓ says that a fixture led to
what it must lead to on the terms of the link; after a ✗ the exit code is 1.

What an event of the processor is about is made in the sandbox where it is
missing: a sale, its billing cycle (closed before its end), a payout run.

Each delivery is audited, and its event has the origin "operator":
"ledger verify" lists what rests on such events.`)
    .examples(
      'webhooks replay --all',
      'webhooks replay path-landing-site',
      'webhooks replay path-landing-site --same --times 3',
      'webhooks replay payout-failed',
      'webhooks replay all --link 4fJq2mXw --times 3 --shuffle',
      'webhooks replay --body order.json --store my-shop.myshopify.com',
      'webhooks replay draft-order --corrupt signature',
    )
    .action(actions.replay)
  group
    .subcommand('events', 'the newest events that came in, and what became of them')
    .choice('--state <state>', 'pending, done, ignored or set_aside')
    .choice('--source <source>', 'store or processor')
    .option('--store <store>', 'of one store, by host name or id')
    .option('--since <time>', 'received since, RFC 3339, or a date: its midnight in BILLING_TIMEZONE')
    .option('--follow', 'go on with events as they arrive and as they are settled, until Ctrl-C')
    .paged()
    .examples(
      'webhooks events --state set_aside',
      'webhooks events --store my-shop.myshopify.com --since 2026-11-20 --follow',
    )
    .action(actions.events)
  group
    .subcommand(
      'reprocess',
      "decide the stored orders by today's rule and show what would differ, in money; changes nothing",
    )
    .option('--dry-run', 'must be given: books are never rewritten')
    .demand(
      'Books are never rewritten: add --dry-run to see what would differ. Correct a mistake by a credit ("affiliate billing credit").',
      ({ dryRun }) => dryRun,
    )
    .option('--since <time>', 'received since, RFC 3339, or a date: its midnight in BILLING_TIMEZONE')
    .option('--store <store>', 'of one store, by host name or id')
    .examples(
      'webhooks reprocess --dry-run',
      'webhooks reprocess --dry-run --since 2026-11-01 --store my-shop.myshopify.com',
    )
    .action(actions.reprocess)
  group
    .subcommand('show', 'one event: where it came from, what became of it, and its body if asked for')
    .argument('<event>', 'its id, or its sender’s delivery id')
    .option('--body', 'the raw body too; it holds the buyer’s data')
    .examples(`webhooks show ${EXAMPLE_ID} --body`)
    .action(actions.show)
  group
    .subcommand('retry', 'apply an event again that was set aside, or that waits for its next try')
    .argument('[event]', 'its id, or its sender’s delivery id')
    .demand(
      'Name an event, or a type with --type.',
      ({ type }, event) => (event === undefined) !== (type === undefined),
    )
    .option('--type <type>', 'instead: every processor event of this type that no rule mapped')
    .text('--reason <text>', 'kept in the audit trail', { lines: 2000 })
    .examples(
      `webhooks retry ${EXAMPLE_ID} --reason 'store is back' --yes`,
      "webhooks retry --type invoice.paid --reason 'added to PROCESSOR_EVENTS' --yes",
    )
    .action(actions.retry)
  group
    .subcommand(
      'listen',
      'print events as they arrive and as they are settled, until Ctrl-C; with --json one document a line',
    )
    .choice('--source <source>', 'store or processor')
    .option('--count <n>', 'end after so many lines', wholeNumber(1, 1_000_000))
    .examples('webhooks listen', 'webhooks listen --source processor --json')
    .action(actions.listen)
}
