// proof only
// database: none
import { suite } from 'uvu'
import { addKillTests } from './kill-tests.ts'

const it = suite('a server that is killed, on SQLite')
addKillTests(it, 'sqlite')
it.run()
