import { describe as describeInOrder, test as testInOrder } from 'vitest'

/** Tests that run side by side, as many as the configuration lets: most of their time is spent waiting for processes. */
export const test = testInOrder.concurrent
export const describe = describeInOrder.concurrent
