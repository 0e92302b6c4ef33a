import { randomBytes } from 'node:crypto'
import type { Role } from '../../../shared/schemas/common.ts'
import type { SessionActor } from '../../platform/api/procedure.ts'
import { logout } from '../../users/sessions.service.ts'
import { addApiKey, addUser, setSuspended } from '../testkit/people.ts'
import type { Caller } from './matrix.ts'
import { actorOf, authorize, type Scene, type Tenant } from './scene.ts'

/** The credentials that a caller presents, and the account it is or pretends to be. */
export interface Presented {
  authorization: string | null
  actor: SessionActor
}

export interface Callers {
  /** `roles` are those that the route is for: invalid tokens belonged to one of them. */
  present(caller: Caller, roles: readonly Role[]): Promise<Presented>
}

export async function openCallers(scene: Scene, tenant: Tenant): Promise<Callers> {
  const { platform } = scene
  const suspended = new Map<Role, Presented>()
  const keys = new Map<string, Presented>()
  let turn = 0

  /** The suspension itself would end the session: here a session has stayed behind, and must not help. */
  async function suspendedOne(role: Role): Promise<Presented> {
    const known = suspended.get(role)
    if (known) return known
    const actor = await addUser(platform, role, 'suspended')
    const { authorization } = await authorize(platform, actor.userId)
    await setSuspended(platform, actor.userId, true)
    suspended.set(role, { authorization, actor })
    return { authorization, actor }
  }

  /** The same one each time, since an account may have only so many. */
  async function keyOf(role: Role, scope: 'read' | 'write'): Promise<Presented> {
    const actor = actorOf(tenant, role)
    const known = keys.get(`${role} ${scope}`)
    if (known) return known
    const { key } = await addApiKey(platform, actor.userId, scope)
    const presented = { authorization: `Bearer ${key}`, actor }
    keys.set(`${role} ${scope}`, presented)
    return presented
  }

  return {
    async present(caller, roles) {
      const [role = 'creator'] = roles
      const actor = actorOf(tenant, role)
      if (caller === 'anonymous') return { authorization: null, actor }
      if (caller === 'garbage') return { authorization: garbage(turn++), actor }
      if (caller === 'suspended') return suspendedOne(role)
      if (caller === 'readKey' || caller === 'writeKey') {
        return keyOf(role === 'admin' ? 'merchant' : role, caller === 'readKey' ? 'read' : 'write')
      }
      if (caller === 'expired') {
        const { authorization } = await authorize(platform, actor.userId, 0)
        return { authorization, actor }
      }
      if (caller === 'ended') {
        const { authorization, sessionId } = await authorize(platform, actor.userId)
        await logout(platform, { ...actor, sessionId })
        return { authorization, actor }
      }
      const self = actorOf(tenant, caller)
      const { authorization, sessionId } = await authorize(platform, self.userId)
      return { authorization, actor: { ...self, sessionId } }
    },
  }
}

/** In turn: a token that was never issued, and headers without a token. */
function garbage(turn: number): string {
  const token = randomBytes(32).toString('base64url')
  const headers = [
    `Bearer ${token}`,
    'Bearer',
    `Bearer ${token} ${token}`,
    `Basic ${Buffer.from('admin:admin').toString('base64')}`,
    'Bearer null',
    `Bearer ${token}'--`,
    `Bearer ${'A'.repeat(4000)}`,
    'Bearer 0',
  ]
  return headers[turn % headers.length] ?? ''
}
