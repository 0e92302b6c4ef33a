// database: none
// time limit: 120 s
import { testRestore } from '../../test/restore-tests.ts'

const it = testRestore('sqlite', null)
it.run()
