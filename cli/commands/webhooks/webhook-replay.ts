import type { Command } from 'commander'
import { exampleText, oneOf, wholeNumber } from '../../command.ts'
import { withApp } from '../../context.ts'
import { Failure } from '../../failures.ts'
import type { ReplayOptions } from '../../replay/signed-event.ts'

/** Beyond it, it is a load test, and those have tools of their own. */
const MOST_TIMES = 1000

export function addReplayCommand(group: Command): void {
  group
    .command('replay')
    .description(
      'sign a fixture, a recorded event or a file with the stored secret, send it to the running service, and show what it led to; refused in production',
    )
    .argument(
      '[fixture]',
      'a name from "webhooks fixtures", all (every order), or the id of a recorded event',
    )
    .option('--body <file>', 'send this file instead (- is stdin)')
    .option('--as <source>', 'who sends the file: store or processor', oneOf(['store', 'processor']), 'store')
    .option('--url <url>', 'the service, on this machine; the address of HOST and PORT unless given')
    .option('--allow-remote', 'let --url name another machine; recorded events are never sent there')
    .option(
      '--link <slug>',
      'follow this affiliate link first: its click, creator and product fill the order',
    )
    .option(
      '--store <store>',
      "the store that sends, by host name or id; the link's merchant's one unless given",
    )
    .option('--event-id <id>', 'the delivery id; a new one unless given (the same again is a redelivery)')
    .option(
      '--cycle <id>',
      'the billing cycle that a processor event is about; the newest fitting one unless given',
    )
    .option(
      '--payout <id>',
      'the payout that a processor event is about; the newest fitting one unless given',
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
Each delivery is audited, and its event has the origin "operator": "ledger verify" lists what rests on such events.
${exampleText(
  'webhooks replay path-landing-site --link 4fJq2mXw',
  'webhooks replay all --link 4fJq2mXw --times 3 --shuffle',
  'webhooks replay payout-failed',
  'webhooks replay --body order.json --store my-shop.myshopify.com',
  'webhooks replay draft-order --corrupt signature',
)}`,
    )
    .action((fixture: string | undefined, options: ReplayOptions, command: Command) =>
      replay(fixture, options, command),
    )
}

function replay(fixture: string | undefined, options: ReplayOptions, command: Command): Promise<void> {
  return withApp(command, async ({ app, out }) => {
    const { replayEvents } = await import('../../replay/replay.ts')
    const { replayLines, wireReplay } = await import('../../replay/replay-report.ts')
    const replays = await replayEvents(app, fixture, options, (text) => out.progress(text))
    out.endProgress()
    out.show({ items: replays.map(wireReplay) }, () => replayLines(replays, out))
    const isTaken = (status: number) => status < 300
    if (options.corrupt !== undefined) {
      const taken = replays.filter(({ answers }) => answers.some(({ status }) => isTaken(status)))
      if (taken.length === 0) return
      throw new Failure(`The service took what was corrupted: ${namesOf(taken)}.`)
    }
    const refused = replays.filter(({ answers }) => !answers.every(({ status }) => isTaken(status)))
    if (refused.length > 0) throw new Failure(`The service refused ${namesOf(refused)}.`)
    const undecided = replays.filter(({ event }) => event === null || event.state === 'pending')
    if (undecided.length > 0) {
      throw new Failure(`Not decided so far: ${namesOf(undecided)}. See "affiliate webhooks events".`)
    }
  })
}

function namesOf(replays: readonly { fixture: string }[]): string {
  return replays.map(({ fixture }) => fixture).join(', ')
}
