/** The story cannot go on, for a reason that one line tells; anything else that is thrown is a bug. */
export class DemoStopped extends Error {}
