import type { Role } from '../../shared/schemas/common.ts'
import type { ExportResource } from '../../shared/schemas/jobs.ts'
import { walkApplications } from '../applications/application-export.service.ts'
import { walkCycles } from '../billing/cycle-export.service.ts'
import { walkClicks } from '../clicks/click-export.service.ts'
import { walkPayouts } from '../payouts/payout-export.service.ts'
import type { Platform } from '../platform/platform.ts'
import type { Walk, WalkScope } from '../platform/walk.ts'
import { walkSales } from '../sales/sale-export.service.ts'

/** Whose rows are exported, and for whom. */
export interface ExportOwner {
  userId: string
  role: Role
}

/** The rows of a resource that belong to its owner, as wire objects. */
export function exportSource(platform: Platform, owner: ExportOwner, resource: ExportResource): Walk<object> {
  const scope = scopeOf(owner)
  switch (resource) {
    case 'sales':
      return walkSales(platform, scope)
    case 'payouts':
      return walkPayouts(platform, scope)
    case 'clicks':
      return walkClicks(platform, scope)
    case 'applications':
      return walkApplications(platform, scope)
    case 'billing_cycles':
      if (owner.role === 'creator') throw new Error('a creator has no billing cycles')
      return walkCycles(platform, owner.role === 'admin' ? null : owner.userId)
  }
}

function scopeOf({ userId, role }: ExportOwner): WalkScope {
  if (role === 'admin') return 'all'
  return role === 'merchant' ? { merchantId: userId } : { creatorId: userId }
}
