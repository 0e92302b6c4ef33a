// database: none
// long
import { testRestore } from '../test/restore-tests.ts'

const it = testRestore('sqlite', null)
it.run()
