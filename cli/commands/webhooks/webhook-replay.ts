import type { Command } from 'commander'
import { exampleText, oneOf, wholeNumber } from '../../command.ts'
import { withApp } from '../../context.ts'
import { Failure } from '../../failures.ts'
import type { ReplayOptions } from '../../replay/signed-event.ts'
import { printLines } from '../../terminal/output.ts'

/** Beyond it, it is a load test, and those have tools of their own. */
const MOST_TIMES = 1000

export function addReplayCommand(group: Command): void {
  group
    .command('replay')
    .description(
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
      '--cycle <id>',
      'the billing cycle that a processor event is about; one that fits, or is made in the sandbox, unless given',
    )
    .option(
      '--payout <id>',
      'the payout that a processor event is about; one that fits, or is made in the sandbox, unless given',
    )
    .option('--times <n>', 'deliver each so often, as senders do', wholeNumber(1, MOST_TIMES), 1)
    .option('--shuffle', 'deliver in a random order')
    .option(
      '--corrupt <part>',
      'break the signature, body or timestamp: the service must refuse it',
      oneOf(['signature', 'body', 'timestamp']),
    )
    .addHelpText(
      'after',
      `
The service must run: start it with "npm start". A ✓ says that a fixture led to
what it must lead to on the terms of the link; after a ✗ the exit code is 1.

What an event of the processor is about is made in the sandbox where it is
missing: a sale, its billing cycle (closed before its end), a payout run.

Each delivery is audited, and its event has the origin "operator":
"ledger verify" lists what rests on such events.
${exampleText(
  'webhooks replay --all',
  'webhooks replay path-landing-site',
  'webhooks replay path-landing-site --same --times 3',
  'webhooks replay payout-failed',
  'webhooks replay all --link 4fJq2mXw --times 3 --shuffle',
  'webhooks replay --body order.json --store my-shop.myshopify.com',
  'webhooks replay draft-order --corrupt signature',
)}`,
    )
    .action(replay)
}

function replay(names: string[], options: ReplayOptions, command: Command): Promise<void> {
  return withApp(command, async ({ app, out }) => {
    const { isTaken, replayEvents } = await import('../../replay/replay.ts')
    const { replayLines, wireReport } = await import('../../replay/replay-report.ts')
    const report = await replayEvents(app, names, options, (text) => out.progress(text))
    out.show(wireReport(report), () => replayLines(report, out))
    const { replays, link } = report
    if (link && link.among > 1 && !out.json) {
      printLines(
        [`The clicks are on ${link.link.slug}, one of ${link.among} links; --link names another.`],
        process.stderr,
      )
    }
    const unmet = replays.filter(({ asExpected }) => asExpected === false)
    if (options.corrupt !== undefined) {
      if (unmet.length === 0) return
      throw new Failure(`The service took what was corrupted: ${namesOf(unmet)}.`)
    }
    const refused = replays.filter(({ answers }) => !answers.every(({ status }) => isTaken(status)))
    if (refused.length > 0) throw new Failure(`The service refused ${namesOf(refused)}.`)
    const undecided = replays.filter(
      ({ event, asExpected }) => !asExpected && (event === null || event.state === 'pending'),
    )
    if (undecided.length > 0) {
      throw new Failure(`Not decided so far: ${namesOf(undecided)}. See "affiliate webhooks events".`)
    }
    if (unmet.length > 0) throw new Failure(`Not as expected: ${namesOf(unmet)}.`)
  })
}

function namesOf(replays: readonly { fixture: string }[]): string {
  return replays.map(({ fixture }) => fixture).join(', ')
}
