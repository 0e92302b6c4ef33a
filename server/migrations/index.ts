import { Migration } from '@mikro-orm/migrations'
import type { Dialect } from '../platform/database/database.ts'
import { up as initial } from './00001-initial.ts'
  '00006-values': values,
