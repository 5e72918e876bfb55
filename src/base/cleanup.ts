/**
 * What has to be undone in the end, the last thing first; each is undone whatever happens to the others. For `await
 * using`. (Node has had an `AsyncDisposableStack` only since 24.)
 */
export class Cleanup implements AsyncDisposable {
  #actions: (() => unknown)[] = []

  defer(action: () => unknown): void {
    this.#actions.push(action)
  }

  use<T extends AsyncDisposable>(resource: T): T {
    this.defer(() => resource[Symbol.asyncDispose]())
    return resource
  }

  /** Hands all of it to the one that is returned. */
  move(): Cleanup {
    const moved = new Cleanup()
    moved.#actions = this.#actions
    this.#actions = []
    return moved
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = []
    for (const action of this.#actions.splice(0).reverse()) {
      try {
        await action()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
