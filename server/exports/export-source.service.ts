import type { Role } from '../../shared/schemas/common.ts'
import type { ExportResource } from '../../shared/schemas/jobs.ts'
import { scanApplications } from '../applications/application-export.service.ts'
import { scanCycles } from '../billing/billing.service.ts'
import { scanClicks } from '../clicks/click-export.service.ts'
import { scanPayouts } from '../payouts/payouts.service.ts'
import type { KeysetScan, ScanScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { scanSales } from '../sales/sales.service.ts'

/** Whose rows are exported, and for whom. */
export interface ExportOwner {
  userId: string
  role: Role
}

/** The rows of a resource that belong to its owner, as wire objects. */
export function exportSource(
  platform: Platform,
  owner: ExportOwner,
  resource: ExportResource,
): KeysetScan<object> {
  const scope = scopeOf(owner)
  switch (resource) {
    case 'sales':
      return scanSales(platform, scope)
    case 'payouts':
      return scanPayouts(platform, scope)
    case 'clicks':
      return scanClicks(platform, scope)
    case 'applications':
      return scanApplications(platform, scope)
    case 'billing_cycles':
      if (owner.role === 'creator') throw new Error('a creator has no billing cycles')
      return scanCycles(platform, owner.role === 'admin' ? null : owner.userId)
  }
}

function scopeOf({ userId, role }: ExportOwner): ScanScope {
  if (role === 'admin') return 'all'
  return role === 'merchant' ? { merchantId: userId } : { creatorId: userId }
}
