; Flat wheels are changed for sound ones with the tools in the boot (Russell's flat-tyre world).
(define (domain tyreworld)
  (:requirements :strips :typing)
  (:types
    obj container hub - object
    tool wheel nut - obj)
  (:constants wrench jack pump - tool)
  (:predicates
    (unlocked ?c - container) (closed ?c - container) (isopen ?c - container)
    (have ?o - obj) (in ?o - obj ?c - container)
    (tight ?n - nut ?h - hub) (loose ?n - nut ?h - hub)
    (on-ground ?h - hub) (not-on-ground ?h - hub)
    (fastened ?h - hub) (unfastened ?h - hub) (free ?h - hub)
    (on ?w - wheel ?h - hub) (intact ?w - wheel)
    (inflated ?w - wheel) (not-inflated ?w - wheel))

  (:action open
    :parameters (?container - container)
    :precondition (and (unlocked ?container) (closed ?container))
    :effect (and (not (closed ?container)) (isopen ?container)))

  (:action close
    :parameters (?container - container)
    :precondition (and (isopen ?container))
    :effect (and (not (isopen ?container)) (closed ?container)))

  (:action fetch
    :parameters (?obj - obj ?container - container)
    :precondition (and (isopen ?container) (in ?obj ?container))
    :effect (and (not (in ?obj ?container)) (have ?obj)))

  (:action put-away
    :parameters (?obj - obj ?container - container)
    :precondition (and (isopen ?container) (have ?obj))
    :effect (and (not (have ?obj)) (in ?obj ?container)))

  (:action loosen
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (tight ?nut ?hub) (on-ground ?hub))
    :effect (and (not (tight ?nut ?hub)) (loose ?nut ?hub)))

  (:action tighten
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (loose ?nut ?hub) (on-ground ?hub))
    :effect (and (not (loose ?nut ?hub)) (tight ?nut ?hub)))

  (:action jack-up
    :parameters (?hub - hub)
    :precondition (and (have jack) (on-ground ?hub))
    :effect (and (not (have jack)) (not (on-ground ?hub)) (not-on-ground ?hub)))

  (:action jack-down
    :parameters (?hub - hub)
    :precondition (and (not-on-ground ?hub))
    :effect (and (not (not-on-ground ?hub)) (on-ground ?hub) (have jack)))

  (:action undo
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (not-on-ground ?hub) (fastened ?hub) (loose ?nut ?hub))
    :effect (and (not (fastened ?hub)) (not (loose ?nut ?hub)) (unfastened ?hub) (have ?nut)))

  (:action do-up
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (not-on-ground ?hub) (unfastened ?hub) (have ?nut))
    :effect (and (not (unfastened ?hub)) (not (have ?nut)) (fastened ?hub) (loose ?nut ?hub)))

  (:action remove-wheel
    :parameters (?wheel - wheel ?hub - hub)
    :precondition (and (not-on-ground ?hub) (unfastened ?hub) (on ?wheel ?hub))
    :effect (and (not (on ?wheel ?hub)) (free ?hub) (have ?wheel)))

  (:action put-on-wheel
    :parameters (?wheel - wheel ?hub - hub)
    :precondition (and (not-on-ground ?hub) (unfastened ?hub) (free ?hub) (have ?wheel))
    :effect (and (not (free ?hub)) (not (have ?wheel)) (on ?wheel ?hub)))

  (:action inflate
    :parameters (?wheel - wheel)
    :precondition (and (have pump) (intact ?wheel) (not-inflated ?wheel))
    :effect (and (not (not-inflated ?wheel)) (inflated ?wheel))))
