// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Role } from '../../../shared/schemas/common.ts'
import { appRouter } from '../../http/router.ts'
import { type ProcedureRecord, proceduresOf, routesOf } from '../../platform/api/procedure.ts'
import { assertNone } from '../testkit/pluck.ts'
import { proofDialects } from '../testkit/proof-size.ts'
import { openCallers, type Presented } from './callers.ts'
import { problemOf, send, type WebAnswer, type WebCall, waysTo } from './calls.ts'
import { changedTables, tableDigests } from './digest.ts'
import { edgeCall } from './edge-calls.ts'
import { CALLERS, EDGE_CELLS, PROCEDURE_CELLS, type Verdict } from './matrix.ts'
import { procedureOf, RECIPES } from './recipes.ts'
import { addTenant, openScene, type Scene, type Tenant } from './scene.ts'

const CODES: Record<Verdict, readonly string[]> = {
  ok: [],
  401: ['unauthenticated', 'invalid_signature'],
  403: ['forbidden'],
  404: ['not_found'],
}

function verdictOf({ status }: WebAnswer): string {
  return status < 400 ? 'ok' : String(status)
}

/** What is wrong with a refusal beside its status. */
function flawOf(answer: WebAnswer, verdict: Verdict): string {
  const code = problemOf(answer).code ?? 'no problem in it'
  if (verdict !== 'ok' && !CODES[verdict].includes(code)) return `, but ${code}`
  const unchallenged = !answer.streamed && !answer.headers.has('www-authenticate')
  return verdict === '401' && unchallenged ? ', but no challenge' : ''
}

const records = new Map(proceduresOf(appRouter).map((record) => [record.name, record]))

function recordOf(row: string): ProcedureRecord {
  const record = records.get(procedureOf(row))
  if (!record) throw new Error(`the router has no procedure ${procedureOf(row)}: take the row away`)
  return record
}

for (const dialect of proofDialects()) {
  const it = suite(`who may call what on ${dialect}`)
  let scene: Scene
  let tenant: Tenant
  let callers: Awaited<ReturnType<typeof openCallers>>
  const counted = { cells: 0, requests: 0 }

  it.before(async () => {
    scene = await openScene(dialect)
    tenant = await addTenant(scene, 'A')
    callers = await openCallers(scene, tenant)
  })
  it.after(async () => {
    const rows = PROCEDURE_CELLS.size + EDGE_CELLS.size
    console.log(
      `\nsize: authorization matrix on ${dialect}: ${rows} rows x ${CALLERS.length} callers = ${counted.cells} cells, ${counted.requests} requests`,
    )
    await scene.close()
  })

  /** Calls, and answers what came out as the table words it. A refused call must leave every table as it was. */
  async function outcome(call: WebCall, presented: Presented, expected: Verdict): Promise<string> {
    counted.requests += 1
    const writes = call.method !== 'GET' && call.method !== 'HEAD'
    const before = expected !== 'ok' && writes ? await tableDigests(scene.platform.database.reader) : {}
    const answer = await send(scene.base, call, presented.authorization)
    if (expected === 'ok' || call.method === 'HEAD') return verdictOf(answer)
    const changed = writes ? changedTables(before, await tableDigests(scene.platform.database.reader)) : []
    const trace = changed.length > 0 ? `, but changed ${changed.join()}` : ''
    return verdictOf(answer) + flawOf(answer, expected) + trace
  }

  it('every procedure has a row and every row a procedure and a recipe', () => {
    const rows = [...PROCEDURE_CELLS.keys()]
    assert.equal([...new Set(rows.map(procedureOf))].sort(), [...records.keys()].sort())
    assert.equal(rows.sort(), Object.keys(RECIPES).sort())
  })

  it('every route of the server is a procedure, a declared edge, or the twin of one', () => {
    const declared = new Set([...EDGE_CELLS.keys()].map(procedureOf))
    for (const { method, path } of [...records.values()].flatMap(routesOf)) declared.add(`${method} ${path}`)
    const served = scene.routes.filter(({ url }) => url !== '/trpc/:path')
    const names = served.map(({ method, url }) => `${method} ${url}`)
    const undeclared = names.filter((name) => !declared.has(name.replace(/^HEAD /, 'GET ')))
    assert.equal(undeclared, [])
    assertNone([...declared], (name) => !names.includes(name))
  })

  for (const [row, cells] of PROCEDURE_CELLS) {
    it(row, async () => {
      const record = recordOf(row)
      const recipe = RECIPES[row]
      assert.ok(recipe)
      for (const caller of CALLERS) {
        counted.cells += 1
        const roles: readonly Role[] = record.meta.callers === 'public' ? ['creator'] : record.meta.callers
        const seen: string[] = []
        for (const way of ['rest', 'also', 'trpc', 'head'] as const) {
          const presented = await callers.present(caller, roles)
          const ways = waysTo(record, await recipe({ scene, tenant, me: presented.actor }))
          const call = way === 'head' ? twinOf(ways.rest) : ways[way]
          if (call) seen.push(`${way} ${await outcome(call, presented, cells[caller])}`)
        }
        for (const answer of seen)
          assert.is(answer.replace(/^\w+ /, ''), cells[caller], `${caller}: ${answer}`)
      }
    })
  }

  for (const [row, cells] of EDGE_CELLS) {
    it(row, async () => {
      for (const caller of CALLERS) {
        counted.cells += 1
        const presented = await callers.present(caller, ['creator'])
        const call = await edgeCall(row, { scene, tenant, me: presented.actor })
        for (const way of [call, twinOf(call)]) {
          if (!way) continue
          const seen = await outcome(way, presented, cells[caller])
          assert.is(seen, cells[caller], `${way.method} as ${caller}: ${seen}`)
        }
      }
    })
  }

  it('unknown procedures and wrong methods are refused for every caller', async () => {
    for (const caller of CALLERS) {
      const { authorization } = await callers.present(caller, ['creator'])
      const unknown = await send(
        scene.base,
        { method: 'GET', path: '/trpc/admin.makeMeAdmin' },
        authorization,
      )
      assert.is(unknown.status, 404, caller)
      const wrong = await send(scene.base, { method: 'GET', path: '/trpc/admin.suspendUser' }, authorization)
      assert.is(wrong.status, 405, caller)
      const path = `/admin/users/${tenant.creator.userId}/suspend`
      assert.is((await send(scene.base, { method: 'DELETE', path }, authorization)).status, 405, caller)
    }
  })

  it.run()
}

/** The same by HEAD, which answers as GET does, without the body. */
function twinOf(call: WebCall | undefined): WebCall | undefined {
  return call?.method === 'GET' ? { ...call, method: 'HEAD' } : undefined
}
