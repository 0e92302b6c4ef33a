// proof only
import { suite } from 'uvu'
import { testDialects } from '../testkit/databases.ts'
import { addKillTests } from './kill-tests.ts'

const it = suite('a server that is killed, on PostgreSQL')
if (testDialects().includes('postgresql')) addKillTests(it, 'postgresql')
else it.skip('there is no PostgreSQL in this run', () => {})
it.run()
