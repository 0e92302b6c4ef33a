import { foldedKey, foldedWords } from '../../server/platform/database/folded-text.ts'
import { insertRows, type NewRow } from '../../server/platform/database/protected-rows.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { offerOf } from '../../server/test/testkit/offer-rows.ts'
import { addUser } from '../../server/test/testkit/people.ts'

const MERCHANTS = 200
const ROWS_AT_ONCE = 500
const WORDS = ['lawn', 'kurta', 'shawl', 'khussa', 'attar', 'ajrak', 'brass', 'rilli', 'sajji', 'truck']
export const CATEGORIES = 20

/** Live offers of two hundred merchants, with rates from 1 to 30 %. */
export async function fillOffers(platform: Platform, count: number): Promise<void> {
  const merchants: string[] = []
  for (let index = 0; index < MERCHANTS; index += 1) {
    merchants.push((await addUser(platform, 'merchant', `Merchant ${index}`)).userId)
  }
  for (let done = 0; done < count; done += ROWS_AT_ONCE) {
    const rows = Array.from({ length: Math.min(ROWS_AT_ONCE, count - done) }, (_, index) =>
      offerRow(platform, merchants, done + index),
    )
    await platform.database.transaction((tx) => insertRows(tx, 'offers', rows))
  }
}

function offerRow(platform: Platform, merchants: readonly string[], number: number): NewRow<'offers'> {
  const word = (place: number) => WORDS[Math.floor(number / WORDS.length ** place) % WORDS.length] ?? ''
  const title = `${word(0)} ${word(1)} ${word(2)} no ${number}`
  const description = `A ${word(1)} for every season, made by hand, sent all over Pakistan within three days. ${word(3)}.`
  const category = `Category ${number % CATEGORIES}`
  const niche = `Niche ${number % 7}`
  const row = offerOf(platform, merchants[number % merchants.length] ?? '', {
    title,
    description,
    category,
    niche,
    product_url: `https://shop${number % merchants.length}.pk/products/${number}`,
    // A stride that shares no factor with the number of rates, so that neighbours differ.
    commission_rate: 100 + ((number * 1237) % 2901),
  })
  return {
    ...row,
    category_key: foldedKey(category),
    niche_key: foldedKey(niche),
    search_words: foldedWords(`${title}\n${description}`).join(' '),
  }
}
