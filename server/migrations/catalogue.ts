import type { Migration } from '@mikro-orm/migrations'
import { foldedKey, foldedWords } from '../platform/database/folded-text.ts'

/** What the list of offers is narrowed to first, and the columns that say so. */
const PREFIXES = {
  live: [],
  category: ['category_key'],
  niche: ['niche_key'],
  category_niche: ['category_key', 'niche_key'],
  merchant: ['merchant_id'],
}

/** The orders in which the list comes. SQLite filters by rate in the index of the newest before it touches a row. */
const ORDERS = {
  newest: ['id', 'commission_rate'],
  high: ['commission_rate', 'id'],
  low: ['commission_rate', 'id desc'],
}

/** One index for each of them; a merchant sees own offers in every status, all others only live ones. */
export const CATALOGUE_INDEXES = Object.entries(PREFIXES).flatMap(([prefix, equal]) =>
  Object.entries(ORDERS).map(([order, sorted]) => {
    const where = prefix === 'merchant' ? '' : " where status = 'live'"
    return `create index "offers_${prefix}_${order}" on "offers" (${[...equal, ...sorted].join(', ')})${where}`
  }),
)

export const SUSPENDED_USERS = `create index "users_suspended" on "users" ("id") where suspended_at is not null`

/** A migration's way to the database. */
type Execute = Migration['execute']

interface OfferTexts {
  id: string
  title: string
  description: string | null
  category: string
  niche: string
}

const BATCH = 500

/** Fills the columns of folded text for the offers that are there already. */
export async function foldStoredOffers(execute: Execute): Promise<void> {
  let last = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const offers = (await execute(
      'select id, title, description, category, niche from offers where id > ? order by id limit ?',
      [last, BATCH],
    )) as OfferTexts[]
    for (const offer of offers) {
      await execute('update offers set category_key = ?, niche_key = ?, search_words = ? where id = ?', [
        foldedKey(offer.category),
        foldedKey(offer.niche),
        foldedWords(`${offer.title}\n${offer.description ?? ''}`).join(' '),
        offer.id,
      ])
    }
    const end = offers.at(-1)
    if (!end || offers.length < BATCH) return
    last = end.id
  }
}
