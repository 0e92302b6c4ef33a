import type { Paisa } from '../../shared/money.ts'
import type { Config } from '../platform/config.ts'

/** Payouts are whole multiples of this, paisa, by processor. */
export const PAYOUT_UNITS: Record<Config['PROCESSOR'], Paisa> = { sandbox: 1, http: 1, 'safepay-raast': 100 }
