import { afterEach } from 'vitest'

/** What a test leaves to be ended when it is over, the last thing first. */
export function endAfterEach(): Pick<AsyncDisposableStack, 'use' | 'defer'> {
  let stack = new AsyncDisposableStack()
  afterEach(async () => {
    const ending = stack
    stack = new AsyncDisposableStack()
    await ending.disposeAsync()
  })
  return { use: resource => stack.use(resource), defer: action => stack.defer(action) }
}
