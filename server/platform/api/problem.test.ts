// database: none
import { TRPCError } from '@trpc/server'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { ERROR_STATUS, type ErrorCode } from '../../../shared/error-codes.ts'
import { problem } from '../../../shared/schemas/common.ts'
import { postgresFault } from '../database/database-faults.ts'
import { problemOf } from './problem.ts'
import { trpcErrorOf } from './procedure.ts'
import { Refusal } from './refusal.ts'

const database = { faultOf: postgresFault }
/** As tRPC hands over what a procedure threw. */
const carried = (cause: unknown) => new TRPCError({ code: 'INTERNAL_SERVER_ERROR', cause })
const codeOf = (error: unknown) => problemOf(error, 'r', database).body.code
const zodError = z.strictObject({ a: z.object({ b: z.int() }) }).safeParse({ a: { b: 'x' }, c: 1 }).error

test('every code has its status, also when tRPC carries it', () => {
  for (const [code, status] of Object.entries(ERROR_STATUS) as [ErrorCode, number][]) {
    const refusal = new Refusal(code, 'Said so.', { internalDetail: 'private', retryAfter: 3 })
    for (const error of [refusal, trpcErrorOf(refusal)]) {
      const answer = problemOf(error, 'r', database)
      assert.equal([answer.status, answer.retryAfter, answer.isBug], [status, 3, false])
      assert.not.match(JSON.stringify(answer.body), /private/)
      assert.equal(problem.parse(answer.body), answer.body)
      assert.is(answer.body.detail, 'Said so.')
    }
  }
})

test('shows nothing of an error that no one expected', () => {
  const error = new Error('select password_hash from users')
  for (const thrown of [error, carried(error), 'text', null]) {
    const answer = problemOf(thrown, 'r', database)
    assert.equal([answer.status, answer.isBug], [500, true])
    assert.not.match(JSON.stringify(answer.body), /select/)
  }
})

test('a database that is away is no bug', () => {
  for (const code of ['ECONNREFUSED', '57P01', '40001']) {
    const error = Object.assign(new Error('x'), { code })
    const { body, retryAfter, isBug } = problemOf(carried(error), 'r', database)
    assert.equal([body.code, retryAfter, isBug], ['unavailable', 2, false])
  }
})

test("a schema's complaint is the caller's fault on the way in, and ours on the way out", () => {
  const input = problemOf(new TRPCError({ code: 'BAD_REQUEST', cause: zodError }), 'r', database)
  assert.is(input.body.code, 'validation_failed')
  assert.equal(input.body.issues?.map((issue) => issue.path).sort(), ['a.b', 'c'])
  assert.is(codeOf(carried(zodError)), 'internal')
  assert.is(codeOf(zodError), 'internal')
})

test('bounds how much it complains about', () => {
  const fields = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x${index}`.repeat(100), 1]))
  const { error } = z.strictObject({}).safeParse(fields)
  const { issues } = problemOf(new TRPCError({ code: 'BAD_REQUEST', cause: error }), 'r', database).body
  assert.is(issues?.length, 50)
  assert.ok(issues?.every((issue) => issue.path.length <= 200))
})

test.run()
