import { Migration } from '@mikro-orm/migrations'
import type { Dialect } from '../platform/database/database.ts'
import { up as initial } from './00001-initial.ts'
import { up as subIds } from './00002-sub-ids.ts'
import { up as terms } from './00003-terms.ts'
import { up as pendingOrders } from './00004-pending-orders.ts'
import { up as storeTopics } from './00005-store-topics.ts'
import { up as values } from './00006-values.ts'
import { up as edges } from './00007-edges.ts'
import { up as manualTransfers } from './00008-manual-transfers.ts'
import { up as apiKeys } from './00009-api-keys.ts'
import { up as operatorLists } from './00010-operator-lists.ts'
import { up as idempotencyKeys } from './00011-idempotency-keys.ts'
import { type Ddl, ddl } from './ddl.ts'

/** In the order in which they run, one file each of the same name. */
const MIGRATIONS: Record<string, (ddl: Ddl) => string[]> = {
  '00001-initial': initial,
  '00002-sub-ids': subIds,
  '00003-terms': terms,
  '00004-pending-orders': pendingOrders,
  '00005-store-topics': storeTopics,
  '00006-values': values,
  '00007-edges': edges,
  '00008-manual-transfers': manualTransfers,
  '00009-api-keys': apiKeys,
  '00010-operator-lists': operatorLists,
  '00011-idempotency-keys': idempotencyKeys,
}

/** The migrations of a database, for MikroORM's migrator. */
export function migrationsFor(dialect: Dialect) {
  return Object.entries(MIGRATIONS).map(([name, up]) => ({
    name,
    class: class extends Migration {
      override up(): void {
        for (const statement of up(ddl(dialect))) if (statement !== '') this.addSql(statement)
      }
    },
  }))
}
