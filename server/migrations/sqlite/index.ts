import { Migration00001Initial } from './00001-initial.ts'
import { Migration00002Guards } from './00002-guards.ts'
import { Migration00003Exports } from './00003-exports.ts'
import { Migration00004Catalogue } from './00004-catalogue.ts'
import { Migration00005Moderation } from './00005-moderation.ts'
import { Migration00007RepeatClicks } from './00007-repeat-clicks.ts'
import { Migration00009ClickKinds } from './00009-click-kinds.ts'
import { Migration00010UnknownCalls } from './00010-unknown-calls.ts'
import { Migration00011JournalWords } from './00011-journal-words.ts'
import { Migration00013CycleSums } from './00013-cycle-sums.ts'
import { Migration00017UnreadableOrders } from './00017-unreadable-orders.ts'
import { Migration00018LoginAddresses } from './00018-login-addresses.ts'
import { Migration00019ResealedDestinations } from './00019-resealed-destinations.ts'
import { Migration00020KeyedJournal } from './00020-keyed-journal.ts'
import { Migration00021OperatorDeliveries } from './00021-operator-deliveries.ts'
import { Migration00022SecondDecisions } from './00022-second-decisions.ts'
import { Migration00023StoreClaims } from './00023-store-claims.ts'
import { Migration00024OfferRejections } from './00024-offer-rejections.ts'
import { Migration00025Coupons } from './00025-coupons.ts'
import { Migration00026StoreDays } from './00026-store-days.ts'
import { Migration00027BillingAccounts } from './00027-billing-accounts.ts'
import { Migration00028PartsOfShares } from './00028-parts-of-shares.ts'

/** In the order in which they run. A migration that has landed is never edited. */
export const sqliteMigrations = [
  { name: '00001-initial', class: Migration00001Initial },
  { name: '00002-guards', class: Migration00002Guards },
  { name: '00003-exports', class: Migration00003Exports },
  { name: '00004-catalogue', class: Migration00004Catalogue },
  { name: '00005-moderation', class: Migration00005Moderation },
  { name: '00007-repeat-clicks', class: Migration00007RepeatClicks },
  { name: '00009-click-kinds', class: Migration00009ClickKinds },
  { name: '00010-unknown-calls', class: Migration00010UnknownCalls },
  { name: '00011-journal-words', class: Migration00011JournalWords },
  { name: '00013-cycle-sums', class: Migration00013CycleSums },
  { name: '00017-unreadable-orders', class: Migration00017UnreadableOrders },
  { name: '00018-login-addresses', class: Migration00018LoginAddresses },
  { name: '00019-resealed-destinations', class: Migration00019ResealedDestinations },
  { name: '00020-keyed-journal', class: Migration00020KeyedJournal },
  { name: '00021-operator-deliveries', class: Migration00021OperatorDeliveries },
  { name: '00022-second-decisions', class: Migration00022SecondDecisions },
  { name: '00023-store-claims', class: Migration00023StoreClaims },
  { name: '00024-offer-rejections', class: Migration00024OfferRejections },
  { name: '00025-coupons', class: Migration00025Coupons },
  { name: '00026-store-days', class: Migration00026StoreDays },
  { name: '00027-billing-accounts', class: Migration00027BillingAccounts },
  { name: '00028-parts-of-shares', class: Migration00028PartsOfShares },
]
