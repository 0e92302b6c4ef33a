// database: none
import { readFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SETTING_NAMES } from '../server/platform/config.ts'
import { SETTINGS_GUIDE, withSettings } from './settings-guide.ts'

const text = readFileSync(SETTINGS_GUIDE, 'utf8')

test('the settings guide is up to date', () => {
  assert.ok(withSettings(text) === text, 'run: npm run settings:guide')
})

test('the settings guide has one row for each setting', () => {
  const rows = [...text.matchAll(/^\| `([A-Z0-9_]+)` \| (.+) \| (.+) \|$/gm)]
  assert.equal(rows.map(([, name]) => name).sort(), [...SETTING_NAMES].sort())
  const defaults = Object.fromEntries(rows.map(([, name, value]) => [name, value]))
  assert.is(defaults.PORT, '`3000`')
  assert.is(defaults.PAYOUT_THRESHOLD, '`1000.00`')
  assert.is(defaults.PUBLIC_BASE_URL, '`http://HOST:PORT`')
  assert.is(defaults.APP_KEYS_FORMER, 'none')
})

test.run()
