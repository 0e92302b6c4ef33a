import { SEALED_WEBHOOK_SECRETS } from '../notifications/channels/webhooks/endpoint-secrets.service.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import type { SealedRow, SealedTable } from '../platform/crypto/sealed-rows.ts'
import { createVault, IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Queries } from '../platform/database/database.ts'
import { SEALED_SECRETS } from '../stores/store-secrets.service.ts'
import { SEALED_BILLING_ACCOUNTS, SEALED_DESTINATIONS } from '../users/sealed-accounts.service.ts'
import { SEALED_SECOND_FACTORS } from '../users/second-factor.service.ts'
import { type Breach, type Invariant, inPages } from './invariant.ts'

const PAGE = 500

/** What must hold of the columns that are sealed with APP_KEY. */
export const SEALED_INVARIANTS: Invariant[] = [
  {
    name: 'sealed-destinations',
    statement:
      'Each payout destination opens with the key, in its own row, for its own user and times, and is the IBAN whose fingerprint and last four characters stand beside it.',
    table: SEALED_DESTINATIONS.name,
    breaches: (db, keys) => findBroken(db, keys, SEALED_DESTINATIONS, 'payout destination'),
  },
  {
    name: 'sealed-billing-accounts',
    statement:
      'Each billing account opens with the key, in its own row, for its own merchant and time, and has its last four characters beside it.',
    table: SEALED_BILLING_ACCOUNTS.name,
    breaches: (db, keys) => findBroken(db, keys, SEALED_BILLING_ACCOUNTS, 'billing account'),
  },
  {
    name: 'sealed-second-factors',
    statement: "Each second factor's secret opens with the key, in its own row, for its own user and time.",
    table: SEALED_SECOND_FACTORS.name,
    breaches: (db, keys) => findBroken(db, keys, SEALED_SECOND_FACTORS, 'second factor of user'),
  },
  {
    name: 'sealed-store-secrets',
    statement:
      "Each store's webhook secret opens with the key, in its own row, for its own merchant, domain and times, and has its fingerprint beside it.",
    table: SEALED_SECRETS.name,
    breaches: (db, keys) => findBroken(db, keys, SEALED_SECRETS, 'store secret'),
  },
  {
    name: 'sealed-webhook-secrets',
    statement:
      "Each webhook endpoint's secret opens with the key, in its own row, for its own account, endpoint and times.",
    table: SEALED_WEBHOOK_SECRETS.name,
    breaches: (db, keys) => findBroken(db, keys, SEALED_WEBHOOK_SECRETS, 'webhook secret'),
  },
]

function findBroken(db: Queries, keys: AppKeys, table: SealedTable, subject: string): Promise<Breach[]> {
  const vault = createVault(keys)
  return inPages(
    (after: string | null) => table.page(db, vault, after, PAGE),
    ({ id }) => id,
    async (page) => {
      const breaches: Breach[] = []
      for (const row of page) {
        const problem = await problemOf(row)
        if (problem !== null) breaches.push({ subject: `${subject} ${row.id}`, detail: problem })
      }
      return breaches
    },
  )
}

async function problemOf(row: SealedRow): Promise<string | null> {
  try {
    await row.open()
    return null
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return error.message
    throw error
  }
}
