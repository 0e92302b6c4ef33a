import { registerEntities } from './platform/database/entities.ts'

// Everything that opens a database imports this file. It loads the entities at their first use: that takes some tenths of a second.
registerEntities(async () => (await import('./schema.ts')).ENTITIES)
