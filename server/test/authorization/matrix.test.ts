// proof only
import * as assert from 'uvu/assert'
import type { Role } from '../../../shared/schemas/common.ts'
import { appRouter } from '../../http/router.ts'
import { proceduresOf, routesOf } from '../../platform/api/procedure.ts'
import { assertNone } from '../testkit/pluck.ts'
import { openCallers, type Presented } from './callers.ts'
import { problemOf, send, type WebAnswer, type WebCall, waysTo } from './calls.ts'
import { changedTables, tableDigests } from './digest.ts'
import { edgeCall } from './edge-calls.ts'
import { CALLERS, EDGE_CELLS, PROCEDURE_CELLS, type Verdict } from './matrix.ts'
import { inputFor, procedureOf, RECIPE_ROWS } from './recipes.ts'
import { type Scene, sceneSuites } from './scene.ts'

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

for (const { it, dialect } of sceneSuites<{ present: ReturnType<typeof openCallers> }>('who may call what')) {
  const counted = { cells: 0, requests: 0 }

  it.before((context) => {
    context.present = openCallers(context.scene, context.tenant)
  })
  it.after(() => {
    const rows = PROCEDURE_CELLS.size + EDGE_CELLS.size
    console.log(
      `\nsize: authorization matrix on ${dialect}: ${rows} rows x ${CALLERS.length} callers = ${counted.cells} cells, ${counted.requests} requests`,
    )
  })

  /** Calls, and answers what came out as the table words it. A refused call must leave every table as it was. */
  async function outcome(
    { platform, base }: Scene,
    call: WebCall,
    { authorization }: Presented,
    expected: Verdict,
  ): Promise<string> {
    const { reader } = platform.database
    counted.requests += 1
    const writes = call.method !== 'GET' && call.method !== 'HEAD'
    const before = expected !== 'ok' && writes ? await tableDigests(reader) : {}
    const answer = await send(base, call, authorization)
    if (expected === 'ok' || call.method === 'HEAD') return verdictOf(answer)
    const changed = writes ? changedTables(before, await tableDigests(reader)) : []
    const trace = changed.length > 0 ? `, but changed ${changed.join()}` : ''
    return verdictOf(answer) + flawOf(answer, expected) + trace
  }

  it('every procedure has a row and every row a procedure; every recipe is for one', () => {
    const rows = [...PROCEDURE_CELLS.keys()]
    assert.equal([...new Set(rows.map(procedureOf))].sort(), [...records.keys()].sort())
    assertNone(RECIPE_ROWS, (row) => !rows.includes(row))
  })

  it('every route of the server is a procedure, a declared edge, or the twin of one', ({ scene }) => {
    const declared = new Set([...EDGE_CELLS.keys()].map(procedureOf))
    for (const { method, path } of [...records.values()].flatMap(routesOf)) declared.add(`${method} ${path}`)
    const served = scene.routes.filter(({ url }) => url !== '/trpc/:path')
    const names = served.map(({ method, url }) => `${method} ${url}`)
    const undeclared = names.filter((name) => !declared.has(name.replace(/^HEAD /, 'GET ')))
    assert.equal(undeclared, [])
    assertNone([...declared], (name) => !names.includes(name))
  })

  for (const [row, cells] of PROCEDURE_CELLS) {
    it(row, async ({ scene, tenant, present }) => {
      const record = records.get(procedureOf(row))
      assert.ok(record, 'the router has no such procedure')
      for (const caller of CALLERS) {
        counted.cells += 1
        const roles: readonly Role[] = record.meta.callers === 'public' ? ['creator'] : record.meta.callers
        const seen: string[] = []
        for (const way of ['rest', 'also', 'trpc', 'head'] as const) {
          const presented = await present(caller, roles)
          const ways = waysTo(record, await inputFor(row, { scene, tenant, me: presented.actor }))
          const call = way === 'head' ? twinOf(ways.rest) : ways[way]
          if (call) seen.push(`${way} ${await outcome(scene, call, presented, cells[caller])}`)
        }
        for (const answer of seen)
          assert.is(answer.replace(/^\w+ /, ''), cells[caller], `${caller}: ${answer}`)
      }
    })
  }

  for (const [row, cells] of EDGE_CELLS) {
    it(row, async ({ scene, tenant, present }) => {
      for (const caller of CALLERS) {
        counted.cells += 1
        const presented = await present(caller)
        const call = await edgeCall(row, { scene, tenant, me: presented.actor })
        for (const way of [call, twinOf(call)]) {
          if (!way) continue
          const seen = await outcome(scene, way, presented, cells[caller])
          assert.is(seen, cells[caller], `${way.method} as ${caller}: ${seen}`)
        }
      }
    })
  }

  it('unknown procedures and wrong methods are refused for every caller', async (context) => {
    const { scene, tenant, present } = context
    for (const caller of CALLERS) {
      const { authorization } = await present(caller)
      const statusOf = async (method: string, path: string) =>
        (await send(scene.base, { method, path }, authorization)).status
      assert.is(await statusOf('GET', '/trpc/admin.makeMeAdmin'), 404, caller)
      assert.is(await statusOf('GET', '/trpc/admin.suspendUser'), 405, caller)
      assert.is(await statusOf('DELETE', `/admin/users/${tenant.creator.userId}/suspend`), 405, caller)
    }
  })

  it.run()
}

/** The same by HEAD, which answers as GET does, without the body. */
function twinOf(call: WebCall | undefined): WebCall | undefined {
  return call?.method === 'GET' ? { ...call, method: 'HEAD' } : undefined
}
