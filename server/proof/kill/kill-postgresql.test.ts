// time limit: 600 s
import { suite } from 'uvu'
import { testDialects } from '../testbed/databases.ts'
import { addKillTests } from './kill-tests.ts'

const it = suite('a server that is killed, on PostgreSQL')
addKillTests(it, 'postgresql')
if (testDialects().includes('postgresql')) it.run()
else console.log('skipped: this needs PostgreSQL')
