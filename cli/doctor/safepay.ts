import type { Config } from '../../server/platform/config.ts'
import type { ProcessorApi } from '../../server/processor/http-exchange.ts'
import {
  checkCredentials,
  endpointProblem,
  SafepayRefusal,
  webhookEndpoints,
} from '../../server/processor/safepay/safepay-account.ts'
import {
  createSafepayProcessor,
  openSafepayApi,
  safepayOptions,
} from '../../server/processor/safepay/safepay-processor.ts'
import { displayMoney } from '../terminal/output.ts'
import { about, type Finding, type Found, wordsOf } from './finding.ts'

const { ok, info, warn, fail } = about('processor')

/** Safepay refuses nothing for a wrong clock, but we refuse its events from five minutes on. */
const MOST_SKEW_MS = 60_000

/** Credentials, clock, balance and the registration of the webhook, in this order; without the first there is no rest. */
export async function examineSafepay(config: Config): Promise<Found> {
  const options = safepayOptions(config)
  const api = openSafepayApi(options)
  const processor = createSafepayProcessor(options)
  try {
    const skew = await checkCredentials(api, options.merchantId)
    const balance = await processor.balance?.()
    return [
      ok('Safepay accepts the key, the aggregator and the merchant'),
      skew === null ? null : skewFinding(skew),
      balance?.kind === 'found'
        ? info(`Safepay holds ${displayMoney(balance.amount)} for payouts`)
        : fail(`the balance is unknown: ${balance?.detail}`, 'Payouts wait until it is shown.'),
      await webhookFinding(api, config),
      signatureFinding(config),
    ]
  } catch (error) {
    const setting = error instanceof SafepayRefusal ? error.setting : null
    const mend =
      setting === null
        ? 'See the guide "safepay".'
        : `Check ${setting}, and that it is of the same environment.`
    return fail(wordsOf(error), mend)
  } finally {
    await Promise.all([api.close(), processor.close()])
  }
}

function skewFinding(skew: number): Finding {
  const detail = `the clock is within ${Math.ceil(Math.abs(skew) / 1000)} s of Safepay's`
  if (Math.abs(skew) <= MOST_SKEW_MS) return ok(detail)
  return fail(detail, 'Let the machine keep its time by NTP (timedatectl set-ntp true).')
}

const SIGNATURE = 'safepay-raast'

function signatureFinding({ PROCESSOR_SIGNATURE }: Config): Found {
  if (PROCESSOR_SIGNATURE === SIGNATURE) return null
  const detail = `PROCESSOR_SIGNATURE is ${PROCESSOR_SIGNATURE}, but Safepay Raast signs its events as ${SIGNATURE}`
  return fail(detail, 'Remove PROCESSOR_SIGNATURE: the right one is the default.')
}

async function webhookFinding(api: ProcessorApi, config: Config): Promise<Finding> {
  if (config.PUBLIC_BASE_URL === undefined) {
    return warn(
      'the webhook registration is not checked: PUBLIC_BASE_URL is not set',
      'Set PUBLIC_BASE_URL to the https address that leads to this service.',
    )
  }
  const url = `${config.PUBLIC_BASE_URL}/webhooks/processor`
  const problem = endpointProblem(await webhookEndpoints(api), url, config.PROCESSOR_WEBHOOK_SECRETS ?? [])
  return problem ? fail(problem.detail, problem.mend) : ok(`Safepay sends its events to ${url}`)
}
