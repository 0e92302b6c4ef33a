/** The Urdu texts, in a chunk of their own. */

export { default as urdu } from './ur.json' with { type: 'json' }
export { default as service } from './ur-service.json' with { type: 'json' }
