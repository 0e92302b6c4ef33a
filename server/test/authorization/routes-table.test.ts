// database: none
import { existsSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { routeRows, SPECIFIED, withRoutes } from './routes-table.ts'

const SERVER = new URL('../../', import.meta.url)
const it = suite('the table of routes')

it('in ARCHITECTURE.md is up to date', () => {
  const text = readFileSync(new URL('ARCHITECTURE.md', SERVER), 'utf8')
  assert.ok(withRoutes(text) === text, 'run: npm run routes:table')
})

it('begins with every row of the specification, in its order', () => {
  const routes = routeRows().map(({ route }) => route)
  assert.is(SPECIFIED.length, 18)
  assert.equal(routes.slice(0, SPECIFIED.length), SPECIFIED)
})

it('points at tests and files that are there and that call what they stand for', () => {
  for (const { route, answeredBy, test, mentions } of routeRows()) {
    assert.ok(existsSync(new URL(test, SERVER)), `${route}: ${test}`)
    if (answeredBy.includes('/'))
      assert.ok(existsSync(new URL(answeredBy, SERVER)), `${route}: ${answeredBy}`)
    const text = readFileSync(new URL(test, SERVER), 'utf8')
    assert.ok(
      mentions.some((word) => text.includes(word)),
      `${route}: ${test} says nothing of ${mentions.join(' or ')}`,
    )
  }
})

it.run()
