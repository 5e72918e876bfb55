import { describe as describeInOrder, test as testInOrder, vi } from 'vitest'

// Two files run at a time too, on what may be two cores.
vi.setConfig({ maxConcurrency: 2 })

/** Tests that run side by side: most of their time is spent waiting for processes. */
export const test = testInOrder.concurrent
export const describe = describeInOrder.concurrent
