; A bar robot with two hands serves ingredients and shaken cocktails in shots (IPC 2011, STRIPS).
(define (domain barman)
  (:requirements :strips :typing)
  (:types
    hand level beverage dispenser container - object
    ingredient cocktail - beverage
    shot shaker - container)
  (:predicates
    (handempty ?h - hand) (holding ?h - hand ?c - container) (ontable ?c - container)
    (empty ?c - container) (clean ?c - container)
    (contains ?c - container ?b - beverage) (used ?c - container ?b - beverage)
    (dispenses ?d - dispenser ?i - ingredient)
    (shaker-empty-level ?s - shaker ?l - level) (shaker-level ?s - shaker ?l - level)
    (next ?lower - level ?upper - level)
    (unshaked ?s - shaker) (shaked ?s - shaker)
    (cocktail-part1 ?c - cocktail ?i - ingredient)
    (cocktail-part2 ?c - cocktail ?i - ingredient))

  (:action grasp
    :parameters (?hand - hand ?container - container)
    :precondition (and (handempty ?hand) (ontable ?container))
    :effect (and (not (handempty ?hand)) (not (ontable ?container))
                 (holding ?hand ?container)))

  (:action leave
    :parameters (?hand - hand ?container - container)
    :precondition (and (holding ?hand ?container))
    :effect (and (not (holding ?hand ?container))
                 (handempty ?hand) (ontable ?container)))

  (:action fill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?holder - hand ?other - hand ?dispenser - dispenser)
    :precondition (and (holding ?holder ?shot) (handempty ?other)
                       (dispenses ?dispenser ?ingredient) (empty ?shot) (clean ?shot))
    :effect (and (not (empty ?shot)) (not (clean ?shot))
                 (contains ?shot ?ingredient) (used ?shot ?ingredient)))

  (:action refill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?holder - hand ?other - hand ?dispenser - dispenser)
    :precondition (and (holding ?holder ?shot) (handempty ?other)
                       (dispenses ?dispenser ?ingredient) (empty ?shot) (used ?shot ?ingredient))
    :effect (and (not (empty ?shot)) (contains ?shot ?ingredient)))

  (:action empty-shot
    :parameters (?hand - hand ?shot - shot ?beverage - beverage)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?beverage))
    :effect (and (not (contains ?shot ?beverage)) (empty ?shot)))

  (:action clean-shot
    :parameters (?shot - shot ?beverage - beverage ?holder - hand ?other - hand)
    :precondition (and (holding ?holder ?shot) (handempty ?other)
                       (empty ?shot) (used ?shot ?beverage))
    :effect (and (not (used ?shot ?beverage)) (clean ?shot)))

  (:action pour-shot-to-clean-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?holder - hand
                 ?lower - level ?upper - level)
    :precondition (and (holding ?holder ?shot) (contains ?shot ?ingredient)
                       (empty ?shaker) (clean ?shaker)
                       (shaker-level ?shaker ?lower) (next ?lower ?upper))
    :effect (and (not (contains ?shot ?ingredient)) (not (empty ?shaker)) (not (clean ?shaker))
                 (not (shaker-level ?shaker ?lower))
                 (empty ?shot) (contains ?shaker ?ingredient) (unshaked ?shaker)
                 (shaker-level ?shaker ?upper)))

  (:action pour-shot-to-used-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?holder - hand
                 ?lower - level ?upper - level)
    :precondition (and (holding ?holder ?shot) (contains ?shot ?ingredient) (unshaked ?shaker)
                       (shaker-level ?shaker ?lower) (next ?lower ?upper))
    :effect (and (not (contains ?shot ?ingredient)) (not (shaker-level ?shaker ?lower))
                 (empty ?shot) (contains ?shaker ?ingredient)
                 (shaker-level ?shaker ?upper)))

  (:action empty-shaker
    :parameters (?hand - hand ?shaker - shaker ?cocktail - cocktail ?from - level ?to - level)
    :precondition (and (holding ?hand ?shaker) (contains ?shaker ?cocktail) (shaked ?shaker)
                       (shaker-level ?shaker ?from) (shaker-empty-level ?shaker ?to))
    :effect (and (not (shaked ?shaker)) (not (contains ?shaker ?cocktail))
                 (not (shaker-level ?shaker ?from))
                 (shaker-level ?shaker ?to) (empty ?shaker)))

  (:action clean-shaker
    :parameters (?holder - hand ?other - hand ?shaker - shaker)
    :precondition (and (holding ?holder ?shaker) (handempty ?other) (empty ?shaker))
    :effect (and (clean ?shaker)))

  (:action shake
    :parameters (?cocktail - cocktail ?first - ingredient ?second - ingredient ?shaker - shaker
                 ?holder - hand ?other - hand)
    :precondition (and (holding ?holder ?shaker) (handempty ?other) (unshaked ?shaker)
                       (contains ?shaker ?first) (contains ?shaker ?second)
                       (cocktail-part1 ?cocktail ?first) (cocktail-part2 ?cocktail ?second))
    :effect (and (not (unshaked ?shaker)) (not (contains ?shaker ?first))
                 (not (contains ?shaker ?second))
                 (shaked ?shaker) (contains ?shaker ?cocktail)))

  (:action pour-shaker-to-shot
    :parameters (?beverage - beverage ?shot - shot ?hand - hand ?shaker - shaker
                 ?upper - level ?lower - level)
    :precondition (and (holding ?hand ?shaker) (shaked ?shaker) (contains ?shaker ?beverage)
                       (empty ?shot) (clean ?shot)
                       (shaker-level ?shaker ?upper) (next ?lower ?upper))
    :effect (and (not (empty ?shot)) (not (clean ?shot)) (not (shaker-level ?shaker ?upper))
                 (contains ?shot ?beverage) (shaker-level ?shaker ?lower))))
